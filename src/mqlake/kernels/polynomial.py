"""Arithmetic on polynomials over GF(2), for the constants of CRC-32 and CRC-32C.

A polynomial is an int whose bit i is the coefficient of x^i.
"""

from __future__ import annotations

CRC32 = 0x104C11DB7
"""The IEEE 802.3 polynomial: x^32 + x^26 + … + 1."""

CRC32C = 0x11EDC6F41
"""Castagnoli's polynomial: x^32 + x^28 + … + 1."""


def divide(dividend: int, divisor: int) -> tuple[int, int]:
    """Return quotient and remainder."""
    quotient = 0
    while (shift := dividend.bit_length() - divisor.bit_length()) >= 0:
        quotient |= 1 << shift
        dividend ^= divisor << shift
    return quotient, dividend


def reflect(polynomial: int, bits: int) -> int:
    """Return the lowest `bits` bits in the opposite order, as CRC-32 keeps them."""
    return int(f"{polynomial:0{bits}b}"[::-1], 2)


def power(exponent: int, modulus: int = CRC32) -> int:
    """Return x^exponent modulo a polynomial."""
    return divide(1 << exponent, modulus)[1]


def byte_table(rows: int, divisor: int = CRC32) -> list[list[int]]:
    """Return [k][v]: the reflected CRC register after byte v and then k zero bytes."""
    first: list[int] = []
    for register in range(256):
        for _ in range(8):
            register = register >> 1 ^ (register & 1) * reflect(divisor & 0xFFFFFFFF, 32)
        first.append(register)
    table = [first]
    for _ in range(rows - 1):
        table.append([value >> 8 ^ first[value & 0xFF] for value in table[-1]])
    return table
