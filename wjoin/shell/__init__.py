"""``wjoin shell``: statements typed at a prompt, on a Spark that starts behind it."""
