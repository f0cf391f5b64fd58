#include "train/agent_keys.h"

#include "env/batch.h"

#include <stdio.h>
#include <string.h>

enum { FIXED = KEY_FIXED | KEY_UNTUNED, FREE = KEY_FREE | KEY_UNTUNED };

static const char environments[] =
#define ENV(name) "|" #name
#include "env/env.def"
#undef ENV
    ;

// A number that may change over the run: one value, or a section.
#define RAMP(path, usual, help)                                                                                        \
    {path, CONFIG_TEXT, usual, 0, 0, NULL, help ": a number, lin_NUMBER, or a section of", FIXED},                     \
        {path ".kind", CONFIG_CHOICE, "linear", 0, 0, "constant|linear|exponential|cosine", "  how it goes", FIXED},   \
        {path ".from", CONFIG_REAL, NULL, 0, 1e6, NULL, "  its value at the beginning", FIXED}, {                      \
        path ".to", CONFIG_REAL, "0", 0, 1e6, NULL, "  its value at the end of the run", FIXED                         \
    }

static const config_key keys[] = {
    {"agent", CONFIG_MAP, NULL, 0, 0, NULL, "trains an agent by PPO in an environment (doc/agents.md)", FIXED},
    {"agent.env", CONFIG_CHOICE, NULL, 0, 0, environments + 1, "environment that the agent acts in", FIXED},
    {"agent.n_envs", CONFIG_INT, "8", 1, 1e6, NULL, "environments side by side", FIXED},
    {"agent.n_steps", CONFIG_INT, "2048", 1, 1e7, NULL, "steps of each in a rollout", FIXED},
    {"agent.batch_size", CONFIG_INT, "64", 1, 1e7, NULL, "rows of a minibatch; divides n_envs x n_steps", FIXED},
    {"agent.n_epochs", CONFIG_INT, "10", 1, 1e4, NULL, "passes over a rollout", FIXED},
    {"agent.total_timesteps", CONFIG_INT, "100000", 1, 1e15, NULL,
        "steps of all environments in the run, rounded up to whole rollouts; more may be asked for where --resume goes "
        "on, unless a value changes over the run",
        FREE},
    {"agent.gamma", CONFIG_REAL, "0.99", 0, 1, NULL, "discount of a later reward", FIXED},
    {"agent.gae_lambda", CONFIG_REAL, "0.95", 0, 1, NULL, "lambda of the generalised advantage estimates", FIXED},
    RAMP("agent.learning_rate", "3.0e-4", "learning rate of Adam"),
    RAMP("agent.clip_range", "0.2", "how far a probability ratio counts"),
    RAMP("agent.ent_coef", "0", "coefficient of the entropy"),
    RAMP("agent.target_kl", "none", "passes end early at 1.5 times this KL divergence (none: never)"),
    {"agent.vf_coef", CONFIG_REAL, "0.5", 0, 1e6, NULL, "coefficient of the value loss", FIXED},
    {"agent.max_grad_norm", CONFIG_REAL, "0.5", 0, 1e9, NULL, "largest norm of the gradient; 0 for no limit", FIXED},
    {"agent.clip_range_vf", CONFIG_REAL, "off", ABOVE_0, 1e9, "off", "how far a value may move in an update", FIXED},
    {"agent.entropy_bound", CONFIG_REAL, "0", 0, 1e9, NULL, "bound of the entropy term; 0 for none", FIXED},
    {"agent.value_loss_bound", CONFIG_REAL, "0", 0, 1e9, NULL, "bound of the value loss; 0 for none", FIXED},
    {"agent.normalize_advantage", CONFIG_BOOL, "true", 0, 0, NULL, "advantages normalised in each minibatch", FIXED},
    {"agent.normalize_observation", CONFIG_BOOL, "false", 0, 0, NULL,
        "observations less their running mean, by their deviation, within 10", FIXED},
    {"agent.normalize_reward", CONFIG_BOOL, "false", 0, 0, NULL,
        "rewards by the deviation of the discounted return, within 10", FIXED},
    {"agent.noise", CONFIG_CHOICE, "independent", 0, 0, "independent|state",
        "exploration of actions that are numbers: drawn at each step, or a function of the state", FIXED},
    {"agent.noise_every", CONFIG_INT, "4", 1, 1e9, NULL, "noise state: steps until that function is drawn anew", FIXED},
    {"agent.log_std_init", CONFIG_REAL, "0", -20, 5, NULL,
        "logarithm of the first deviation of actions that are numbers", FIXED},
    {"agent.shared", CONFIG_BOOL, "false", 0, 0, NULL, "policy and value share all layers but the last", FIXED},
    {"agent.lstm", CONFIG_INT, "0", 0, 4096, NULL,
        "units of an LSTM before each net, a memory; batch_size is then a multiple of n_steps; 0 for none", FIXED},
    {"agent.limit", CONFIG_INT, "auto", 1, 1e9, "auto",
        "steps at which an episode is truncated; auto: the environment's", FIXED},
    {"agent.lags", CONFIG_INT, "1", 1, 1000, NULL, "market: newest closed bars whose features are observed", FIXED},
    {"agent.actions", CONFIG_CHOICE, "discrete", 0, 0, "discrete|continuous",
        "market: short, flat or long; or a direction and a size", FIXED},
    {"agent.position", CONFIG_REAL, "0.95", ABOVE_0, 1000, NULL, "market: value of a full position in units of equity",
        FIXED},
    {"agent.ruin", CONFIG_REAL, "0.5", 0, 0.99, NULL, "market: share of the cash at which an episode terminates",
        FIXED},
    {"agent.reward", CONFIG_CHOICE, "log", 0, 0, "log|sharpe|shaped",
        "market: change of log equity after costs, differential Sharpe ratio, or the first less drawdown", FIXED},
    {"agent.sharpe_rate", CONFIG_REAL, "0.01", ABOVE_0, 1, NULL,
        "market, reward sharpe: weight of the newest return in the moving averages", FIXED},
    {"agent.drawdown_weight", CONFIG_REAL, "0.5", 0, 100, NULL, "market, reward shaped: weight of the largest drawdown",
        FIXED},
    {"agent.evaluate_every", CONFIG_INT, "auto", 1, 1e9, "auto",
        "iterations from one evaluation to the next; auto: some 10,000 steps of all environments", FIXED},
    {"agent.evaluate_episodes", CONFIG_INT, "20", 1, 1e5, NULL, "greedy episodes of an evaluation", FIXED},
};

const config_key *agent_keys(size_t *count) {
    *count = sizeof keys / sizeof *keys;
    return keys;
}

bool agent_given(const config *c) {
    return config_given(c, "agent");
}

bool agent_complete(config *c, err *e) {
    static const struct {
        const char *kind, *path, *value; // NULL: of all kinds
    } usual[] = {{NULL, "model.kind", "mlp"}, {NULL, "model.dropout", "0"}, {"mlp", "model.widths", "64-64"},
        {"mlp", "model.activation", "tanh"}, {"transformer", "model.hidden", "64"},
        {"transformer", "model.layers", "2"}, {"transformer", "model.heads", "4"}};
    bool ok = true;
    for (size_t i = 0; ok && agent_given(c) && i < sizeof usual / sizeof *usual; i++) {
        char assignment[64];
        snprintf(assignment, sizeof assignment, "%s=%s", usual[i].path, usual[i].value);
        if (usual[i].kind && !config_is(c, "model.kind", usual[i].kind)) continue;
        ok = config_given(c, usual[i].path) || config_override(c, assignment, e);
    }
    return ok;
}

// Keys of other sections that an agent reads. A name that ends with * stands for all that begin like it.
static const char *const read[] = {"agent", "agent.*", "model.*", "run.*", "on_event.*", "train.seed", "train.ensemble",
    "train.patience", "train.init_from", "train.checkpoint_every", "train.checkpoint_minutes", "train.keep_checkpoints",
    "gpu_optimization.use_mixed_precision", "gpu_optimization.max_memory_gb", "gpu_optimization.memory_fraction",
    "gpu_optimization.max_host_memory_gb", "gpu_optimization.memory_monitoring", "gpu_optimization.monitoring_interval",
    "gpu_optimization.gradient_accumulation_steps", "gpu_optimization.dynamic_batch_sizing"};

// Keys that have another name for an agent.
static const struct {
    const char *path, *why;
} instead[] = {{"train.batch_size", "the key of an agent is agent.batch_size"},
    {"train.optimizer.lr", "the key of an agent is agent.learning_rate"},
    {"train.clip_norm", "the key of an agent is agent.max_grad_norm"},
    {"train.epochs", "the key of an agent is agent.total_timesteps"},
    {"model.symbol", "the environment has no symbols"}};

static bool is_read(const char *path) {
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        size_t n = strlen(read[i]);
        bool wild = read[i][n - 1] == '*';
        if (wild ? strncmp(read[i], path, n - 1) == 0 : strcmp(read[i], path) == 0) return true;
    }
    return false;
}

static bool is_market(const config *c) {
    return env_find(config_text(c, "agent.env")) == ENV_market;
}

// Keys that only the market environment reads.
static const char *const of_market[] = {"agent.lags", "agent.actions", "agent.position", "agent.ruin", "agent.reward",
    "agent.sharpe_rate", "agent.drawdown_weight"};

static const char *of_others(const config *c, const char *path) {
    for (size_t i = 0; i < sizeof of_market / sizeof *of_market; i++)
        if (strcmp(path, of_market[i]) == 0 && !is_market(c)) return "is of agent.env: market";
    if (strcmp(path, "agent.sharpe_rate") == 0 && !config_is(c, "agent.reward", "sharpe"))
        return "is of agent.reward: sharpe";
    if (strcmp(path, "agent.drawdown_weight") == 0 && !config_is(c, "agent.reward", "shaped"))
        return "is of agent.reward: shaped";
    if (strcmp(path, "agent.evaluate_episodes") == 0 && is_market(c)) return "evaluations pass once over the part";
    return NULL;
}

// Keys of actions that are numbers.
static const char *in_vain(const config *c, const char *path) {
    env_settings env = {.kind = env_find(config_text(c, "agent.env"))};
    env.market.continuous = config_is(c, "agent.actions", "continuous");
    if (of_others(c, path)) return of_others(c, path);
    if (strcmp(path, "agent.log_std_init") == 0 && env_shape_of(&env).choices)
        return "is of actions that are numbers, and this environment has choices";
    if (strcmp(path, "agent.noise_every") == 0 && !config_is(c, "agent.noise", "state"))
        return "is of agent.noise: state";
    return NULL;
}

const char *agent_unread(const config *c, const char *path) {
    for (size_t i = 0; i < sizeof instead / sizeof *instead; i++)
        if (strcmp(path, instead[i].path) == 0) return instead[i].why;
    if (is_read(path)) return in_vain(c, path);
    if (is_market(c) && (strncmp(path, "data.", 5) == 0 || strncmp(path, "account.", 8) == 0)) return NULL;
    if (is_market(c) && strncmp(path, "walk", 4) == 0) return NULL; // a fold's parts (walk.fold)
    return strncmp(path, "data.", 5) == 0 ? "the environment has no data" : "an agent does not read it";
}
