"""When some weights can give every training sample its label."""
