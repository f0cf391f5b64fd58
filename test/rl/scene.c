#include "rl/scene.h"

#include "base/config.h"
#include "rl/nets.h"
#include "support.h"
#include "train/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

model_spec scene_net(void) {
    return scene_net_of("64-64", "tanh");
}

static model_spec read_net(const char *text, const model_data *about) {
    err e;
    model_spec m;
    config *c = config_read("net", text, strlen(text), settings_keys(), settings_key_count(), &e);
    assert_true(c && config_check(c, &e));
    assert_true(model_read(c, about, &m, &e));
    config_free(c);
    return m;
}

model_spec scene_net_of(const char *widths, const char *activation) {
    char text[128];
    snprintf(text, sizeof text, "model: {kind: mlp, widths: %s, activation: %s, dropout: 0}\n", widths, activation);
    return read_net(text, &(model_data){.classes = 2});
}

model_spec scene_transformer(void) {
    return scene_transformer_of("hidden: 16, layers: 1, heads: 2, ff: 32, projection: 8, head: 32");
}

model_spec scene_transformer_of(const char *keys) {
    char text[256];
    snprintf(text, sizeof text, "model: {kind: transformer, dropout: 0, %s}\n", keys);
    return read_net(text, &(model_data){.classes = 2, .streams = 1, .stream = {NETS_STREAM}});
}

agent_settings scene_cartpole(uint64_t seed) {
    agent_settings s = {.envs = 8, .steps = 32, .batch = 256, .micro = 256, .epochs = 20, .total = 100000, .tests = 20};
    s.world.env = (env_settings){.kind = ENV_cartpole, .limit = 500};
    s.test = s.world;
    s.rate = (ramp){RAMP_LINEAR, 1e-3, 0};
    s.clip = (ramp){RAMP_LINEAR, 0.2, 0};
    s.gamma = 0.98;
    s.lambda = 0.8;
    s.value = 0.5;
    s.max_norm = 0.5;
    s.adam_eps = 1e-5;
    s.normalise_advantage = true;
    s.seed = seed;
    return s;
}

agent_settings scene_pendulum(uint64_t seed) {
    agent_settings s = scene_cartpole(seed);
    s.world.env = (env_settings){.kind = ENV_pendulum, .limit = 200};
    s.test = s.world;
    s.envs = 4;
    s.steps = 1024;
    s.batch = s.micro = 64;
    s.epochs = 10;
    s.rate = (ramp){RAMP_CONSTANT, 1e-3, 0};
    s.clip = (ramp){RAMP_CONSTANT, 0.2, 0};
    s.gamma = 0.9;
    s.lambda = 0.95;
    s.state_noise = true;
    s.noise_hold = 4;
    return s;
}
