SELECT count(*) FROM camera1 A, camera2 B WINDOW = 5 s GROUP BY A.obj
