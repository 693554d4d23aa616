SELECT A.speed FROM camera1 A, camera2 B
WINDOW (A, B) = 5 SECONDS OR DWINDOW (A, B) = A.ts - A.ts AT MOST 1 HOUR WHERE A.obj_id = B.obj_id
