SELECT A.obj_id, count(*) FROM camera1 A, camera2 B WINDOW = 5 s GROUP BY obj_id
