SELECT 1 FROM camera1, db.camera1 WINDOW = 5 s
