SELECT A.speed FROM camera1 A FULL JOIN camera2 B USING (obj_id) WINDOW (A, B) = 5 SECONDS
