SELECT A.speed FROM camera1 A, camera2 B, camera3 C WINDOW (A, B) = 10 SECONDS
WHERE A.obj_id = B.obj_id AND B.obj_id = C.obj_id AND C.ts > A.ts
