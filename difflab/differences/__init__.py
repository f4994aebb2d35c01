"""The ladder of finite differences and its estimate of noise: values only, no rule, no method."""
