SELECT A.speed FROM camera1 A LEFT JOIN (camera2 B JOIN camera3 C ON A.obj_id = C.obj_id) ON A.obj_id = B.obj_id
WINDOW = 5 SECONDS
