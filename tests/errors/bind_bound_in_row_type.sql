SELECT A.speed FROM camera1 A, camera2 B WINDOW (A, B) = A.speed AT MOST 1 HOUR
WHERE A.obj_id = B.obj_id
