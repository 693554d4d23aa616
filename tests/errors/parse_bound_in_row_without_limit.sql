SELECT A.speed FROM camera1 A, camera2 B DWINDOW (A, B) = A.expires - A.ts
WHERE A.obj_id = B.obj_id
