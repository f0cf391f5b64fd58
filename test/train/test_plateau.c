#include "train/plateau.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

// torch.optim.lr_scheduler.ReduceLROnPlateau with threshold_mode "rel" and no cooldown, written out for positive
// values.
typedef struct {
    double lr, best;
    int bad;
} plain;

static void plain_step(plain *p, const plateau_options *o, double value) {
    bool better = o->higher ? value > p->best * (1 + o->threshold) : value < p->best * (1 - o->threshold);
    if (better) p->best = value;
    p->bad = better ? 0 : p->bad + 1;
    if (p->bad <= o->patience) return;
    p->lr = fmax(p->lr * o->factor, o->least);
    p->bad = 0;
}

static void as_PyTorch(void **state) {
    (void)state;
    unsigned draw = 12345;
    for (int mode = 0; mode < 2; mode++)
        for (int patience = 0; patience < 4; patience++) {
            plateau_options o = {.factor = 0.5, .threshold = 0.01, .least = 1e-4, .patience = patience, .higher = mode};
            plain want = {.lr = 0.1, .best = mode ? -INFINITY : INFINITY};
            plateau p;
            plateau_init(&p, 0.1);
            for (int i = 0; i < 200; i++) {
                draw = draw * 1664525u + 1013904223u;
                double value = 1 + (mode ? 1 : -1) * 0.4 * i / 200 + 0.1 * (draw >> 16) / 65536.0;
                double before = p.lr;
                bool fell = plateau_take(&p, &o, value);
                plain_step(&want, &o, value);
                assert_true(p.lr == want.lr && p.best == want.best && p.waiting == want.bad);
                assert_true(fell == (p.lr < before));
            }
            assert_true(p.lr < 0.1);
        }
}

static void by_hand(void **state) {
    (void)state;
    plateau_options o = {.factor = 0.1, .threshold = 0, .least = 2e-3, .patience = 1, .higher = true};
    plateau p;
    plateau_init(&p, 1);
    static const double value[] = {0.1, 0.1, 0.1, 0.2, 0.1, 0.2, 0.2, 0.2, 0.2};
    static const bool falls[] = {false, false, true, false, false, true, false, true, false};
    for (int i = 0; i < 9; i++) assert_true(plateau_take(&p, &o, value[i]) == falls[i]);
    assert_true(fabs(p.lr - 2e-3) < 1e-15 && p.falls == 3);
    for (int i = 0; i < 6; i++) assert_false(plateau_take(&p, &o, 0.2));
    assert_true(p.lr == 2e-3 && p.falls == 3);
}

// A threshold is a share of the best value's size, also below 0.
static void below_zero(void **state) {
    (void)state;
    plateau_options o = {.factor = 0.5, .threshold = 0.1, .patience = 10, .higher = true};
    plateau p;
    plateau_init(&p, 1);
    plateau_take(&p, &o, -1);
    plateau_take(&p, &o, -0.95);
    assert_true(p.best == -1);
    plateau_take(&p, &o, -0.89);
    assert_true(p.best == -0.89);
}

static void NaN_is_never_better(void **state) {
    (void)state;
    plateau_options o = {.factor = 0.5, .patience = 1, .higher = false};
    plateau p;
    plateau_init(&p, 1);
    assert_false(plateau_take(&p, &o, (double)NAN));
    assert_true(plateau_take(&p, &o, (double)NAN) && p.lr == 0.5);
    assert_false(plateau_take(&p, &o, 3));
    assert_false(plateau_take(&p, &o, (double)NAN));
    assert_true(p.best == 3 && p.waiting == 1);
}

// A floor above the rate does not lift it.
static void a_floor_lifts_nothing(void **state) {
    (void)state;
    plateau_options o = {.factor = 0.5, .least = 2, .patience = 0, .higher = true};
    plateau p;
    plateau_init(&p, 1);
    plateau_take(&p, &o, 1);
    assert_false(plateau_take(&p, &o, 0));
    assert_true(p.lr == 1 && p.falls == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_PyTorch),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(below_zero),
        cmocka_unit_test(NaN_is_never_better),
        cmocka_unit_test(a_floor_lifts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
