SELECT /*+ PLAN(ATR) */ A.speed FROM camera1 A FULL JOIN camera2 B ON A.speed < B.speed WINDOW (A, B) = 5 SECONDS
