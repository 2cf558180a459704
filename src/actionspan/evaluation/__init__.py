"""The evaluation stage: AR@AN and AUC by the official protocols, baselines and figures."""
