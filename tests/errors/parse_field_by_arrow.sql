SELECT A.x FROM a A JOIN b B WITHIN 5 SECONDS ON A.x = B.y->z->w AND exists(A.tags, t -> t = B.x)
