SELECT A.obj_id FROM camera1 A, camera2 B WINDOW (A, B) BETWEEN -1 AND 5
