// Any rules, orders and bars for an account: money never appears or vanishes, and nothing wraps. The books are held
// against a purse that pays every fill at its price before costs.
#include "base/err.h"
#include "env/account.h"

#include <stddef.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    const uint8_t *at;
    size_t left;
} input;

static uint64_t take(input *in, size_t bytes) {
    uint64_t v = 0;
    if (bytes > in->left) bytes = in->left;
    memcpy(&v, in->at, bytes);
    in->at += bytes;
    in->left -= bytes;
    return v;
}

// An amount of 0 to `most`: any number of its bits may be in use, so that small ones come up too.
static int64_t amount(input *in, int64_t most) {
    uint64_t bits = take(in, 1) % 64, v = take(in, 8) & ((UINT64_C(2) << bits) - 1);
    return (int64_t)(v % ((uint64_t)most + 1));
}

static int64_t either(input *in, int64_t most) {
    int64_t v = amount(in, most);
    return take(in, 1) & 1 ? -v : v;
}

static account_rules rules_of(input *in) {
    account_rules r = {.cash = amount(in, ACCOUNT_MOST)};
    r.spread = (account_amount){amount(in, ACCOUNT_SHARE / 2), amount(in, ACCOUNT_MOST)};
    r.slippage = (account_amount){amount(in, ACCOUNT_SHARE / 2), amount(in, ACCOUNT_MOST)};
    r.swap_long = (account_amount){either(in, ACCOUNT_SHARE), either(in, ACCOUNT_MOST)};
    r.swap_short = (account_amount){either(in, ACCOUNT_SHARE), either(in, ACCOUNT_MOST)};
    r.commission_share = amount(in, ACCOUNT_SHARE);
    r.commission_money = amount(in, ACCOUNT_MOST);
    r.commission_units = 1 + amount(in, ACCOUNT_MOST - 1);
    r.leverage = ACCOUNT_ONE + amount(in, 10000 * ACCOUNT_ONE);
    r.margin_call = amount(in, ACCOUNT_SHARE);
    r.contract = 1 + amount(in, ACCOUNT_MOST - 1);
    r.lot_step = amount(in, ACCOUNT_MOST);
    uint64_t flags = take(in, 1);
    r.target_first = flags & 1;
    r.entry_stop = flags & 2;
    r.shorts = flags & 4;
    return r;
}

static account_bar bar_of(input *in) {
    account_bar b = {1 + amount(in, ACCOUNT_MOST - 1), 1 + amount(in, ACCOUNT_MOST - 1),
        1 + amount(in, ACCOUNT_MOST - 1), 1 + amount(in, ACCOUNT_MOST - 1), 0};
    if (take(in, 1) & 1) b.spread = amount(in, ACCOUNT_MOST);
    return b;
}

typedef struct {
    account_wide purse, results;
    int64_t units;
} ledger;

static void book(ledger *l, const account_events *ev) {
    CHECK(ev->count >= 0 && ev->count <= ACCOUNT_FILLS_MOST, "%d fills", ev->count);
    for (int i = 0; i < ev->count; i++) {
        const account_fill *f = &ev->fill[i];
        CHECK(f->commission >= 0 && f->value >= 0 && f->price >= 0, "a fill with a gift");
        l->purse -= account_round((account_wide)f->units * f->raw, ACCOUNT_ONE);
        l->units += f->units;
        l->results += f->result;
    }
}

static void check(account *a, const account_rules *r, const ledger *l, int64_t price) {
    account copy = *a;
    int64_t equity = account_equity(&copy, price);
    CHECK(a->units == l->units, "units differ");
    CHECK(a->units || a->cash == r->cash + l->results, "results differ from the cash");
    CHECK(a->commission >= 0 && a->spread >= 0 && a->slippage >= 0, "costs below 0");
    if (copy.state) return;
    account_wide worth = account_round((account_wide)a->units * price, ACCOUNT_ONE);
    account_wide should = l->purse + worth - a->commission - a->spread - a->slippage + a->swap;
    CHECK(equity == should, "money appeared or vanished");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    account_rules r = rules_of(&in);
    account a;
    account_events ev = {.count = 0};
    ledger l = {.purse = r.cash};
    account_init(&a, &r);
    while (in.left) {
        uint64_t what = take(&in, 1);
        account_bar b = bar_of(&in);
        bool over = false;
        account_order o = {
            account_units(&r, either(&in, ACCOUNT_MOST), &over), amount(&in, ACCOUNT_MOST), amount(&in, ACCOUNT_MOST)};
        if (what & 1) account_night(&a, &r, (int64_t)(what >> 4), b.open);
        account_step(&a, &r, what & 2 && !over ? &o : NULL, &b, &ev);
        book(&l, &ev);
        check(&a, &r, &l, b.close);
        ev.count = 0;
        if (what & 4) account_close(&a, &r, b.close, ACCOUNT_BY_END, &ev);
        book(&l, &ev);
        check(&a, &r, &l, b.close);
    }
    return 0;
}
