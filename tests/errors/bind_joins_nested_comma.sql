SELECT A.speed FROM camera1 D, camera1 A LEFT JOIN (camera2 B JOIN camera3 C ON B.obj_id = C.obj_id) ON A.obj_id = B.obj_id
WINDOW = 5 SECONDS WHERE A.obj_id = D.obj_id
