SELECT obj_id FROM camera1 A FULL JOIN camera2 B USING (obj_id) LEFT JOIN camera3 C USING (obj_id) WINDOW (A, B) = 5 SECONDS AND WINDOW (A, C) = 5 SECONDS
