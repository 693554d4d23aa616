SELECT A.obj_id FROM camera1 A, table1 B, camera3 C WINDOW = 5 s
