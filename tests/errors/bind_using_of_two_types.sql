SELECT 1 FROM badge A JOIN texts B USING (person) WINDOW = 5 s
