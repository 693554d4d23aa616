SELECT /*+ PLAN(NATIVE) */ A.unit FROM plant A, plant B WINDOW = 5 s WHERE A.unit = B.unit
