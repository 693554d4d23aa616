SELECT A.obj_id FROM camera1 A, camera2 B, camera3 C WINDOW = 5 s WHERE speed > 3
