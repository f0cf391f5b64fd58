#include "data/bars_number.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

__extension__ typedef unsigned __int128 wide;

// A number taken apart: `mantissa` has `digits` significant digits of which `decimals` stand behind the point.
typedef struct {
    bool negative, other; // other: an exponent, or more than 19 digits
    uint64_t mantissa;
    size_t digits, decimals;
} decimal;

enum { DIGITS_MOST = 19, LONGEST = 4096 };

static const uint64_t tens[] = {1ull, 10ull, 100ull, 1000ull, 10000ull, 100000ull, 1000000ull, 10000000ull,
    100000000ull, 1000000000ull, 10000000000ull, 100000000000ull, 1000000000000ull, 10000000000000ull,
    100000000000000ull, 1000000000000000ull, 10000000000000000ull, 100000000000000000ull, 1000000000000000000ull,
    10000000000000000000ull};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Takes a number apart; false if the text is none.
static bool take_apart(const char *p, size_t n, decimal *d) {
    const char *end = p + n;
    *d = (decimal){0};
    if (p < end && (*p == '-' || *p == '+')) d->negative = *p++ == '-';
    const char *first = p;
    size_t point = 0;
    for (; p < end; p++) {
        if (*p == '.' && !point) {
            point = 1;
            continue;
        }
        if (!is_digit(*p)) break;
        if (d->digits < DIGITS_MOST) d->mantissa = d->mantissa * 10 + (uint64_t)(*p - '0');
        d->digits += d->digits || *p != '0';
        d->decimals += point;
    }
    if ((size_t)(p - first) == point) return false;
    d->other = d->digits > DIGITS_MOST || d->decimals > DIGITS_MOST;
    if (p == end) return true;
    if (*p != 'e' && *p != 'E') return false;
    d->other = true;
    if (++p < end && (*p == '-' || *p == '+')) p++;
    if (p == end) return false;
    while (p < end && is_digit(*p)) p++;
    return p == end;
}

// The double nearest to mantissa / 10^decimals, ties to even, for a mantissa of 2^53 or more. The quotient of
// mantissa * 2^64 then has at least 54 bits; with what the division leaves over as a last bit, the conversion from
// uint64_t rounds as it should.
static double divide(uint64_t mantissa, size_t decimals) {
    wide up = (wide)mantissa << 64;
    wide q = up / tens[decimals];
    bool rest = q * tens[decimals] != up;
    int shift = 0;
    while (q >> 64) {
        rest |= q & 1;
        q >>= 1;
        shift++;
    }
    uint64_t low = (uint64_t)q;
    while (!(low >> 63)) {
        low <<= 1;
        shift--;
    }
    // After a shift to the left the last bits are free; after one to the right there are bits enough below the 54th.
    return ldexp((double)(low | rest), shift - 64);
}

static number_kind by_strtod(const char *text, size_t n, double *v) {
    char stack[128], *copy = n < sizeof stack ? stack : NULL;
    if (!copy && n <= LONGEST) copy = malloc(n + 1);
    if (!copy) return NUMBER_BAD;
    memcpy(copy, text, n);
    copy[n] = 0;
    char *end;
    *v = strtod(copy, &end);
    bool ok = end == copy + n && isfinite(*v);
    if (copy != stack) free(copy);
    return ok ? NUMBER_OK : NUMBER_BAD;
}

static bool is_missing(const char *text, size_t n) {
    static const char *const words[] = {"", "null", "nan", "na", "n/a", "none", "-", "<na>", "nat"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && !strncasecmp(words[i], text, n)) return true;
    return false;
}

number_kind bars_number(const char *text, size_t n, double *v) {
    static const double exact[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
    decimal d;
    *v = 0;
    if (!take_apart(text, n, &d)) return is_missing(text, n) ? NUMBER_MISSING : NUMBER_BAD;
    if (d.other) return by_strtod(text, n, v);
    // Below 2^53 both are exact doubles, and their quotient is rounded once.
    double value = d.mantissa < (1ull << 53) ? (double)d.mantissa / exact[d.decimals] : divide(d.mantissa, d.decimals);
    *v = d.negative ? -value : value;
    return NUMBER_OK;
}

// The power of ten that a letter stands for; 0 for none.
static int power_of(char c) {
    switch (c) {
    case 'K':
    case 'k': return 3;
    case 'M':
    case 'm': return 6;
    case 'B':
    case 'b': return 9;
    case 'T':
    case 't': return 12;
    default: return 0;
    }
}

// Copies digits without the commas that part them into groups of three; false where they do not.
static bool without_commas(const char *p, size_t n, bool english, char *out, size_t *used) {
    size_t commas = 0, point = 0, since = 0;
    *used = 0;
    for (size_t i = 0; i < n; i++) {
        bool comma = p[i] == ',', dot = p[i] == '.';
        if ((comma || dot) && commas && since != 3) return false;
        if (comma && (point || !since || since > 3)) return false;
        commas += comma;
        point += dot;
        since = comma ? 0 : since + is_digit(p[i]);
        if (!comma) out[(*used)++] = p[i];
    }
    if (commas && !point && since != 3) return false;
    return commas != 1 || point || english;
}

number_kind bars_number_dressed(const char *text, size_t n, bool english, bool lettered, double *v) {
    enum { DRESSED_MOST = 64 };
    char plain[DRESSED_MOST + 8];
    const char *end = text + n;
    size_t used = 0, more;
    if (n > DRESSED_MOST) return NUMBER_BAD;
    if (text < end && (*text == '-' || *text == '+')) plain[used++] = *text++;
    if (text < end && *text == '$') text++;
    int power = lettered && text < end ? power_of(end[-1]) : 0;
    if (power) end--;
    if (text == end || !is_digit(*text)) return NUMBER_BAD;
    if (!without_commas(text, (size_t)(end - text), english, plain + used, &more)) return NUMBER_BAD;
    used += more;
    if (power && memchr(plain, 'e', used)) return NUMBER_BAD;
    if (power) used += (size_t)snprintf(plain + used, sizeof plain - used, "e%d", power);
    return bars_number(plain, used, v) == NUMBER_OK ? NUMBER_OK : NUMBER_BAD;
}
