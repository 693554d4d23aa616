SELECT * FROM camera1 A, camera2 B WINDOW (A, B) =
WHERE A.obj_id = B.obj_id
