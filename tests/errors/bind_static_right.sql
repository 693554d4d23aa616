SELECT A.speed FROM camera1 A JOIN camera2 B ON A.obj_id = B.obj_id RIGHT JOIN names N ON A.obj_id = N.id
WINDOW (A, B) = 5 SECONDS
