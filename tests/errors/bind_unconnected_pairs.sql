SELECT A.obj_id FROM camera1 A, camera2 B, camera3 C, camera1 D
WINDOW (A, B) = 5 s AND WINDOW (C, D) = 5 s
