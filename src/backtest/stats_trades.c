#include "backtest/stats_work.h"

#include "backtest/control.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    double win, loss, cost, traded;
    int64_t wins, bars; // bars with a position
} totals;

static totals totals_of(const stats_input *in) {
    totals t = {0};
    int64_t reached = 0; // bars before it are counted
    for (int64_t i = 0; i < in->trades; i++) {
        const stats_trade *k = &in->trade[i];
        int64_t from = k->entry > reached ? k->entry : reached;
        if (k->exit >= from) {
            t.bars += k->exit + 1 - from;
            reached = k->exit + 1;
        }
        t.wins += k->result > 0;
        t.win += k->result > 0 ? k->result : 0;
        t.loss -= k->result < 0 ? k->result : 0;
        t.cost += k->cost;
        t.traded += k->traded;
    }
    return t;
}

static double mean_equity(const stats_input *in) {
    double sum = 0;
    for (int64_t i = 0; i < in->bars; i++) sum += in->equity[i];
    return sum / (double)in->bars;
}

void stats_of_trades(const stats_base *b, stats *s) {
    static const char *const none = "no trades";
    const stats_input *in = b->in;
    totals t = totals_of(in);
    double n = (double)in->trades, equity = mean_equity(in);
    stat_put(s, STAT_EXPOSURE, (double)t.bars / (double)in->bars, NULL);
    stat_put(s, STAT_TRADES, n, NULL);
    stat_put(s, STAT_COSTS, t.cost, NULL);
    stat_put(s, STAT_WIN_RATE, (double)t.wins / n, none);
    stat_put(s, STAT_EXPECTANCY, (t.win - t.loss) / n, none);
    stat_put(s, STAT_PROFIT_FACTOR, t.loss > 0 ? t.win / t.loss : (double)NAN, in->trades ? "no losing trade" : none);
    stat_put(s, STAT_BREAKEVEN_COST, t.traded > 0 ? (t.win - t.loss + t.cost) / t.traded : (double)NAN, none);
    if (equity <= 0)
        stat_lack(s, STAT_TURNOVER, "mean equity is 0 or below");
    else
        stat_put(s, STAT_TURNOVER, t.traded / equity / b->years, "the bars have one time");
}

static void lack_control(stats *s, const char *why) {
    for (int k = STAT_RANDOM_RETURN; k <= STAT_RANDOM_BETTER; k++) stat_lack(s, (stat_name)k, why);
}

// Why there is no control; NULL where there can be one.
static const char *no_control(const stats_input *in) {
    if (!in->price) return "no prices";
    if (in->brief) return "not asked for";
    if (!in->trades) return "no trades";
    for (int64_t i = 0; i < in->bars; i++)
        if (!(in->price[i] > 0)) return "a price is 0 or below";
    for (int64_t i = 0; i < in->trades; i++)
        if (in->trade[i].entry && !(in->equity[in->trade[i].entry - 1] > 0)) return "equity falls to 0 or below";
    return NULL;
}

bool stats_of_control(const stats_base *b, stats *s, err *e) {
    const stats_input *in = b->in;
    const char *why = no_control(in);
    control c;
    bool room = false;
    if (why) {
        lack_control(s, why);
        return true;
    }
    control_trade *trade = malloc((size_t)in->trades * sizeof *trade);
    if (!trade) return err_run(e, "out of memory for %lld trades", (long long)in->trades);
    for (int64_t i = 0; i < in->trades; i++) {
        const stats_trade *t = &in->trade[i];
        double before = t->entry ? in->equity[t->entry - 1] : in->cash;
        trade[i] = (control_trade){t->exit - t->entry, t->side * t->value / before, t->cost / before};
    }
    control_input of = {in->price, in->bars, trade, in->trades, in->seed};
    bool ok = control_make(&of, s->of[STAT_RETURN].value, &c, &room, e);
    free(trade);
    if (!ok) return false;
    if (!room) {
        lack_control(s, "trades overlap, or fill all bars");
        return true;
    }
    stat_put(s, STAT_RANDOM_RETURN, c.mean, NULL);
    stat_put(s, STAT_RANDOM_LOW, c.low, NULL);
    stat_put(s, STAT_RANDOM_HIGH, c.high, NULL);
    stat_put(s, STAT_RANDOM_BETTER, c.better, NULL);
    return true;
}
