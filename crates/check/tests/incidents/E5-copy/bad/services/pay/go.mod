module example.com/pay
