SELECT A.obj_id AS identity FROM camera1 A, camera2 B WINDOW = 5 s ORDER BY identiti
