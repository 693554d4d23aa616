SELECT A.speed FROM camera1 A LEFT JOIN (camera2 B LEFT JOIN names N ON B.obj_id = N.id AND A.obj_id > N.id) ON A.obj_id = B.obj_id
WINDOW (A, B) = 5 SECONDS
