"""What training code imports: checkpoints that are committed whole, an epoch that is obeyed, a heartbeat, word to Airflow. Knows torch."""
