SELECT A.speed FROM camera1 A LEFT JOIN (camera2 B LEFT JOIN names N ON N.id > 3) ON A.obj_id = B.obj_id
WINDOW (A, B) = 5 SECONDS
