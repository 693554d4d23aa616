SELECT A.obj_id FROM camera1 A, camera2 B, names N WINDOW = 5 SECONDS WHERE A.obj_id = B.obj_id
