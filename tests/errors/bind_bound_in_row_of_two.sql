SELECT A.speed FROM camera1 A, camera2 B DWINDOW (A, B) = B.ts - A.ts AT MOST 1 HOUR
WHERE A.obj_id = B.obj_id
