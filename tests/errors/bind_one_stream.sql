SELECT obj_id FROM camera1 WINDOW = 5 s
