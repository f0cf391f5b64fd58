#include "train/names.h"

#define READ(from, to)                                                                                                 \
    { .name = from, .key = to }
#define READ_AS(section, name, key) READ(name, key), READ(section "." name, key)
#define SAID(from, text)                                                                                               \
    { .name = from, .why = text }
#define NOT_NEEDED(name, why)                                                                                          \
    SAID(name, why), SAID("data." name, why), SAID("train." name, why), SAID("gpu_optimization." name, why)

// Names of scripts, below the section; and those whose values are written in another way here.
#define AGENT_NAME(name, key) READ("agent." name, "agent." key)
#define AGENT_WRITES(from, text)                                                                                       \
    { .name = "agent." from, .why = text, .refused = true }

static const char gathered[] = "not needed; batches are gathered on the device, or by threads that share the data";
static const char shuffled[] = "always on; training samples are shuffled in every epoch, by train.seed";
static const char planned[] = "not needed; memory is planned before the run, in one slab";
static const char compiled[] = "not needed; steps are recorded once and replayed";

static const config_name names[] = {
    READ_AS("train", "learning_rate", "train.optimizer.lr"),
    READ_AS("train", "lr", "train.optimizer.lr"),
    READ("train.optimizer.learning_rate", "train.optimizer.lr"),
    READ_AS("train", "weight_decay", "train.optimizer.weight_decay"),
    READ("optimizer", "train.optimizer.kind"),
    READ("batch_size", "train.batch_size"),
    READ("epochs", "train.epochs"),
    READ_AS("train", "num_epochs", "train.epochs"),
    READ_AS("train", "max_epochs", "train.epochs"),
    READ("patience", "train.patience"),
    READ_AS("train", "early_stopping_patience", "train.patience"),
    READ_AS("train", "early_stopping", "train.patience"),
    READ("seed", "train.seed"),
    READ_AS("train", "random_seed", "train.seed"),
    READ_AS("train", "max_grad_norm", "train.clip_norm"),
    READ_AS("train", "grad_clip", "train.clip_norm"),
    READ_AS("train", "accumulation_steps", "gpu_optimization.gradient_accumulation_steps"),
    READ("gpu_optimization.accumulation_steps", "gpu_optimization.gradient_accumulation_steps"),
    READ_AS("train", "gradient_accumulation_steps", "gpu_optimization.gradient_accumulation_steps"),
    READ_AS("train", "use_amp", "gpu_optimization.use_mixed_precision"),
    READ("gpu_optimization.use_amp", "gpu_optimization.use_mixed_precision"),
    READ_AS("train", "use_mixed_precision", "gpu_optimization.use_mixed_precision"),
    READ("max_memory_gb", "gpu_optimization.max_memory_gb"),
    READ("model.type", "model.kind"),
    READ_AS("model", "hidden_dim", "model.hidden"),
    READ_AS("model", "hidden_size", "model.hidden"),
    READ_AS("model", "num_layers", "model.layers"),
    READ_AS("model", "num_heads", "model.heads"),
    READ_AS("model", "nhead", "model.heads"),
    READ_AS("model", "dim_feedforward", "model.ff"),
    READ("dropout", "model.dropout"),
    READ_AS("train", "num_workers", "data.num_workers"),
    READ_AS("train", "prefetch_factor", "data.prefetch_factor"),
    READ_AS("train", "device", "run.device"),
    READ("output_dir", "run.dir"),
    AGENT_NAME("N_ENVS", "n_envs"),
    AGENT_NAME("N_STEPS", "n_steps"),
    AGENT_NAME("BATCH_SIZE", "batch_size"),
    AGENT_NAME("N_EPOCHS", "n_epochs"),
    AGENT_NAME("TOTAL_TIMESTEPS", "total_timesteps"),
    AGENT_NAME("n_timesteps", "total_timesteps"),
    AGENT_NAME("GAMMA", "gamma"),
    AGENT_NAME("GAE_LAMBDA", "gae_lambda"),
    AGENT_NAME("LEARNING_RATE", "learning_rate"),
    AGENT_NAME("CLIP_RANGE", "clip_range"),
    AGENT_NAME("CLIP_RANGE_VF", "clip_range_vf"),
    AGENT_NAME("ENT_COEF", "ent_coef"),
    AGENT_NAME("VF_COEF", "vf_coef"),
    AGENT_NAME("MAX_GRAD_NORM", "max_grad_norm"),
    AGENT_NAME("TARGET_KL", "target_kl"),
    AGENT_NAME("NORMALIZE_ADVANTAGE", "normalize_advantage"),
    AGENT_NAME("LOG_STD_INIT", "log_std_init"),
    AGENT_NAME("SDE_SAMPLE_FREQ", "noise_every"),
    AGENT_NAME("sde_sample_freq", "noise_every"),
    AGENT_NAME("LR", "learning_rate"),
    AGENT_NAME("lr", "learning_rate"),
    AGENT_NAME("lstm_hidden_size", "lstm"),
    AGENT_WRITES("use_sde", "write agent.noise: state"),
    AGENT_WRITES("policy", "write model.kind: mlp; agent.lstm puts a memory before it"),
    AGENT_WRITES("policy_kwargs", "write model.widths, model.activation and agent.log_std_init"),
    AGENT_WRITES("net_arch", "write model.widths, such as 64-64"),
    AGENT_WRITES("activation_fn", "write model.activation, such as tanh"),
    AGENT_WRITES("normalize", "write agent.normalize_observation and agent.normalize_reward"),
    AGENT_WRITES("nminibatches", "write agent.batch_size, the rows of one"),
    READ("agent.SEED", "train.seed"),
    READ("agent.seed", "train.seed"),
    NOT_NEEDED("pin_memory", gathered),
    NOT_NEEDED("persistent_workers", gathered),
    NOT_NEEDED("shared_memory", gathered),
    NOT_NEEDED("use_shared_memory", gathered),
    NOT_NEEDED("non_blocking", gathered),
    NOT_NEEDED("shuffle", shuffled),
    NOT_NEEDED("empty_cache", planned),
    NOT_NEEDED("torch_compile", compiled),
    NOT_NEEDED("cudnn_benchmark", compiled),
};

const config_name *names_all(size_t *count) {
    *count = sizeof names / sizeof *names;
    return names;
}
