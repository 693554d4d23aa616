SELECT A.speed FROM camera1 A, camera2 B WINDOW (A, B) = 10 MINUTES
WHERE A.obj_id = B.obj_id AND DATEDIFF(minute, A, B) BETWEEN 0 AND 5
