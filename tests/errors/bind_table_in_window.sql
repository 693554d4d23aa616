SELECT A.obj_id FROM camera1 A, camera2 B, names N
WINDOW (A, B) = 5 SECONDS AND WINDOW (B, N) = 1 HOUR
WHERE A.obj_id = B.obj_id AND A.obj_id = N.id
