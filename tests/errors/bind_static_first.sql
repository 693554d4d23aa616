SELECT A.speed FROM names N LEFT JOIN camera1 A ON A.obj_id = N.id JOIN camera2 B ON A.obj_id = B.obj_id
WINDOW (A, B) = 5 SECONDS
