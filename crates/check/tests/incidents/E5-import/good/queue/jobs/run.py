import store

def late():
    import fixtures.all
