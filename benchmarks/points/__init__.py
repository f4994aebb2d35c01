"""Derivatives of scalar code at one point and at a million, beside CasADi and heyoka."""
