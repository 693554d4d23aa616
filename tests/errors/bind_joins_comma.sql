SELECT A.speed FROM camera1 A, camera2 B RIGHT JOIN camera3 C ON B.obj_id = C.obj_id
WINDOW = 5 SECONDS WHERE A.obj_id = B.obj_id
