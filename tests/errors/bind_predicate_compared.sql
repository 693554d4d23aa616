SELECT A.obj_id FROM camera1 A, camera2 B WINDOW = 5 s WHERE A.obj_id > B.obj_id AND 0.5 < linked(A.speed, B.speed)
