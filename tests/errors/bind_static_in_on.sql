SELECT A.speed FROM camera1 A JOIN names N ON A.obj_id = N.id LEFT JOIN camera2 B ON A.obj_id = B.obj_id AND N.name = B.frame
WINDOW (A, B) = 5 SECONDS
