#include "train/names.h"

#define READ_AS(section, name, key)                                                                                    \
    {name, key, NULL}, {                                                                                               \
        section "." name, key, NULL                                                                                    \
    }
#define NOT_NEEDED(name, why)                                                                                          \
    {name, NULL, why}, {"data." name, NULL, why}, {"train." name, NULL, why}, {                                        \
        "gpu_optimization." name, NULL, why                                                                            \
    }

// Names of scripts, below the section.
#define AGENT_NAME(name, key)                                                                                          \
    { "agent." name, "agent." key, NULL }

static const char gathered[] = "not needed; batches are gathered on the device, or by threads that share the data";
static const char shuffled[] = "always on; training samples are shuffled in every epoch, by train.seed";
static const char planned[] = "not needed; memory is planned before the run, in one slab";
static const char compiled[] = "not needed; steps are recorded once and replayed";

static const config_name names[] = {
    READ_AS("train", "learning_rate", "train.optimizer.lr"),
    READ_AS("train", "lr", "train.optimizer.lr"),
    {"train.optimizer.learning_rate", "train.optimizer.lr", NULL},
    READ_AS("train", "weight_decay", "train.optimizer.weight_decay"),
    {"optimizer", "train.optimizer.kind", NULL},
    {"batch_size", "train.batch_size", NULL},
    {"epochs", "train.epochs", NULL},
    READ_AS("train", "num_epochs", "train.epochs"),
    READ_AS("train", "max_epochs", "train.epochs"),
    {"patience", "train.patience", NULL},
    READ_AS("train", "early_stopping_patience", "train.patience"),
    READ_AS("train", "early_stopping", "train.patience"),
    {"seed", "train.seed", NULL},
    READ_AS("train", "random_seed", "train.seed"),
    READ_AS("train", "max_grad_norm", "train.clip_norm"),
    READ_AS("train", "grad_clip", "train.clip_norm"),
    READ_AS("train", "accumulation_steps", "gpu_optimization.gradient_accumulation_steps"),
    {"gpu_optimization.accumulation_steps", "gpu_optimization.gradient_accumulation_steps", NULL},
    READ_AS("train", "gradient_accumulation_steps", "gpu_optimization.gradient_accumulation_steps"),
    READ_AS("train", "use_amp", "gpu_optimization.use_mixed_precision"),
    {"gpu_optimization.use_amp", "gpu_optimization.use_mixed_precision", NULL},
    READ_AS("train", "use_mixed_precision", "gpu_optimization.use_mixed_precision"),
    {"max_memory_gb", "gpu_optimization.max_memory_gb", NULL},
    {"model.type", "model.kind", NULL},
    READ_AS("model", "hidden_dim", "model.hidden"),
    READ_AS("model", "hidden_size", "model.hidden"),
    READ_AS("model", "num_layers", "model.layers"),
    READ_AS("model", "num_heads", "model.heads"),
    READ_AS("model", "nhead", "model.heads"),
    READ_AS("model", "dim_feedforward", "model.ff"),
    {"dropout", "model.dropout", NULL},
    READ_AS("train", "num_workers", "data.num_workers"),
    READ_AS("train", "prefetch_factor", "data.prefetch_factor"),
    READ_AS("train", "device", "run.device"),
    {"output_dir", "run.dir", NULL},
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
    {"agent.SEED", "train.seed", NULL},
    {"agent.seed", "train.seed", NULL},
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
