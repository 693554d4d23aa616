SELECT A.speed FROM camera1 A, camera2 B WINDOW (A, B) = 10 SECONDS
WHERE A.obj_id = B.obj_id AND B.ts > A.ts + INTERVAL 1 MINUTE
