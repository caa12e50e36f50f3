-- A job_submit.lua as sites have them: jobs name an account and a time limit, those with cards go where cards are.

function slurm_job_submit(job_desc, part_list, submit_uid)
  if job_desc.account == nil then
    slurm.log_user("name your project: --account=PROJECT")
    return slurm.ESLURM_INVALID_ACCOUNT
  end
  if job_desc.time_limit == slurm.NO_VAL then
    job_desc.time_limit = 60
    slurm.log_user("no --time was given: the job has an hour")
  end
  if job_desc.partition == nil and (job_desc.tres_per_node or job_desc.tres_per_task) and part_list["gpu"] then
    job_desc.partition = "gpu"
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  if job_desc.time_limit ~= slurm.NO_VAL and job_desc.time_limit > 24 * 60 then
    slurm.log_user("a time limit above a day is for the operators to give")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
