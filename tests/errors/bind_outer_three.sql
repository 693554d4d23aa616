SELECT A.speed FROM camera1 A LEFT JOIN camera2 B ON A.obj_id = B.obj_id JOIN camera3 C ON C.obj_id = A.obj_id
WINDOW = 5 SECONDS
