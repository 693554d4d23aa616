SELECT /*+ PLAN(PSP) */ A.speed FROM camera1 A LEFT JOIN camera2 B ON A.speed < B.speed WINDOW (A, B) = 5 SECONDS
