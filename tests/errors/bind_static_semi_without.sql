SELECT A.speed FROM camera1 A JOIN camera2 B ON A.obj_id = B.obj_id SEMI JOIN names N ON N.name = 'x'
WINDOW (A, B) = 5 SECONDS
