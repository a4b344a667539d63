import fixtures.all
